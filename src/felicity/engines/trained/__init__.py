"""LSTM and TDLM language models trained here, on CPU or GPU."""
