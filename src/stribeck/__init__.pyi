from stribeck.api.arm import identify_arm as identify_arm
from stribeck.api.compensator import Compensator as Compensator
from stribeck.api.fit import Fit as Fit
from stribeck.api.fit import read as read
from stribeck.api.joint import identify_joint as identify_joint
from stribeck.api.mechanism import identify_mechanism as identify_mechanism
from stribeck.api.prediction import MachinePrediction as MachinePrediction
from stribeck.api.prediction import Prediction as Prediction
from stribeck.api.recordings import Recordings as Recordings
from stribeck.api.recordings import StribeckWarning as StribeckWarning
from stribeck.api.recordings import load as load
from stribeck.api.robot import identify_robot as identify_robot
from stribeck.api.servo import identify_servo as identify_servo
from stribeck.errors import StribeckError as StribeckError

__version__: str
