"""P3's linear topology: a cheap operator, then an expensive one."""

from rheostat.apps.inputs import read_input
from rheostat.apps.modelled import modelled
from rheostat.model.topology_file import find_topology

if __name__ == "__main__":
    modelled(find_topology("linear"), read_input(__doc__)).run()
