# Written by `python -m calibrant._names`.

from calibrant.monitoring.bets import Bet as Bet
from calibrant.monitoring.bets import Bets as Bets
from calibrant.monitoring.bets import Defect as Defect
from calibrant.monitoring.control import Window as Window
from calibrant.monitoring.control import Windows as Windows
from calibrant.monitoring.monitor import Alarm as Alarm
from calibrant.monitoring.monitor import Monitor as Monitor
