"""The words of the phrasebook, as tables.

A kind ("food", "fruit", "reading" …) determines which words combine, so that soup is not read and a bridge not tired.
The Korean of a verb or adjective is its dictionary form and the class of its irregularity: ㅂ ㄷ 르 ㅎ 으 ㅅ ㄹ, or
"" where it is regular. A bar splits a noun from its 하다 (공부|하다), for the negation goes between: 공부 안 해요. A
space (키가 크다) does the same and is written.
"""
