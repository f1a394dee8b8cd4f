from .engine import TrainedEngine as TrainedEngine
from .engine import describe_trained as describe_trained
from .engine import list_topics as list_topics
from .engine import load_trained_tokenizer as load_trained_tokenizer
from .settings import TopicSettings as TopicSettings
from .settings import TrainingSettings as TrainingSettings
from .training import train as train
from .training_data import prepare as prepare
