"""Meaning and choices of the options of the model classes, for the help. A test compares them with the classes."""

from collections.abc import Collection

from softgaze.models.captioner import DECODERS
from softgaze.models.embeddings import TIES
from softgaze.models.rnn import CELLS
from softgaze.models.transformer import FEED_FORWARDS, NORMS, RESIDUALS
from softgaze.positions import POSITIONS
from softgaze.scores import SCORES, WINDOWS

OPTION_CHOICES: dict[str, Collection[str]] = {
    "cell": CELLS,
    "decoder": DECODERS,
    "decoder_self": ("attention", "ssru"),
    "feed_forward": FEED_FORWARDS,
    "norm": NORMS,
    "positions": POSITIONS,
    "residual": RESIDUALS,
    "score": SCORES,
    "tie": TIES,
    "window": WINDOWS,
}

OPTION_HELP = {
    "attention_dropout": "Dropout of the attention weights.",
    "cell": "Recurrent cell.",
    "decoder": "Decoder that writes the caption.",
    "decoder_layers": "Number of decoder layers.",
    "decoder_self": "Layer over the target: self-attention, or a recurrent SSRU (Kim 2019).",
    "dilation": "Factor by which the dilation grows from layer to layer.",
    "dropout": "Dropout probability.",
    "embedding_norm": "Normalize the embeddings.",
    "encoder": "Image encoder: cnn, patches, frames (of --features), efficientnet, or a Hugging Face directory.",
    "encoder_layers": "Number of encoder layers.",
    "feed_forward": "Activation of the feed-forward layer.",
    "feed_forward_width": "Inner width of the feed-forward layer (d_ff).",
    "frozen": "Keep the weights of a pretrained image encoder fixed.",
    "heads": "Number of attention heads.",
    "input_feeding": "Also feed the attentional state of the previous step to the decoder (Luong 2015, section 3.3).",
    "kernel": "Kernel size of the convolutions, in tokens.",
    "key_heads": "Number of key and value heads, shared by groups of query heads. Default: as many as heads.",
    "layers": "Number of layers.",
    "max_length": "Number of learned positions.",
    "norm": "Normalization layer.",
    "norm_eps": "Epsilon of the normalization. Default: that of the norm.",
    "output_bias": "Bias of the output layer.",
    "pooling": "mean: give the decoder the mean of all regions, without attention.",
    "positions": "Position encoding.",
    "residual": "Normalize before (pre) or after (post) each residual connection.",
    "scale_embeddings": "Multiply embeddings by the square root of the width.",
    "score": "Attention score function.",
    "self_attention": "Add self-attention layers among the regions of a pretrained image encoder.",
    "shortcut": "Add the source embeddings to the encoder output.",
    "tie": "Embedding matrices that share their weights.",
    "width": "Width of the hidden vectors (d_model).",
    "window": "Source positions that a step attends to.",
    "window_size": "Positions on each side of a local attention window.",
}
