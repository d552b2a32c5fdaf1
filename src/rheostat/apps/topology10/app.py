"""P4's topology 10: a tree of ten operators that share their rows unequally."""

from rheostat.apps.inputs import read_input
from rheostat.apps.modelled import modelled
from rheostat.model.topology_file import find_topology

if __name__ == "__main__":
    modelled(find_topology("topology10"), read_input(__doc__)).run()
