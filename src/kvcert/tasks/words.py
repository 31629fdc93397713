"""Word lists of the synthetic tasks: common, short, unambiguous, and none of them inside another."""

from __future__ import annotations


def _list(text: str) -> tuple[str, ...]:
    return tuple(text.split())


FIRST_NAMES = _list(
    "Alice Boris Carla Daniel Elena Felix Greta Hassan Irene Jonas Karen Luis Maria Nadia Oscar Petra Quentin Rosa "
    "Samuel Tessa Ulrich Vera Walter Yusuf Zoe Amira Bruno Clara Diego Emma Farid Gloria Hugo Ivan Julia Klaus Laura "
    "Marco Nina Omar"
)

LAST_NAMES = _list(
    "Adler Brandt Castro Dupont Ellis Fischer Garcia Hansen Ibrahim Jensen Keller Lopez Murphy Novak Olsen Parker Quinn "
    "Rossi Santos Turner Ueda Vargas Wagner Xu Young Ziegler Bauer Cohen Diaz Evans Foster Gupta Hughes Ito Kim Lang "
    "Meyer Nolan Ortiz Price"
)

CITIES = _list(
    "Paris London Berlin Madrid Rome Vienna Athens Dublin Lisbon Prague Warsaw Oslo Stockholm Helsinki Moscow Istanbul "
    "Cairo Nairobi Lagos Mumbai Delhi Tokyo Seoul Beijing Shanghai Bangkok Singapore Sydney Melbourne Toronto Montreal "
    "Chicago Boston Denver Seattle Houston Miami Atlanta Phoenix Dallas"
)

COLOURS = _list("red blue green yellow purple orange black white brown pink gray silver")
ANIMALS = _list(
    "tiger falcon dolphin rabbit turtle eagle panda lizard otter beaver camel donkey giraffe hamster jaguar koala leopard "
    "monkey parrot raven salmon spider swan walrus zebra badger cobra ferret gecko heron"
)
JOBS = _list("teacher doctor farmer pilot lawyer baker painter engineer plumber nurse singer chef")
