"""The benchmark of batch sizes: every way of computing really trains, and every batch size is a row."""

from benchmarks.batches import WAYS, main, table


def test_every_way_trains_and_the_page_has_their_speeds(tmp_path):
    main(["--batches", "256", "--rounds", "1", "--updates", "2", "--out", str(tmp_path / "page.md")])
    row = (tmp_path / "page.md").read_text().splitlines()[-1].strip("| ").split(" | ")
    assert row[0] == "256"
    assert len(row) == 2 + len(WAYS)
    assert all(float(cell.replace(",", "")) > 0 for cell in row)


def test_ratios_are_taken_within_each_round():
    speeds = {"one thread": [1.0, 1.0, 1.0], "two threads": [10.0, 20.0, 40.0], "two processes": [20.0, 20.0, 20.0]}
    assert table({2048: speeds}).splitlines()[-1] == "| 2,048 | 1 | 20 | 20 | 1.00 |"
