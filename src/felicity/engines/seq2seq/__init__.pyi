from .engine import Seq2SeqEngine as Seq2SeqEngine
