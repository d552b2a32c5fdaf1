"""P3's star: two sources meet in a cheap operator that feeds two expensive ones."""

from rheostat.apps.inputs import read_input
from rheostat.apps.modelled import modelled
from rheostat.model.topology_file import find_topology

if __name__ == "__main__":
    modelled(find_topology("star"), read_input(__doc__)).run()
