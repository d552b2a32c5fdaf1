"""P3's diamond: two cheap operators share the rows and meet in an expensive one."""

from rheostat.apps.inputs import read_input
from rheostat.apps.modelled import modelled
from rheostat.model.topology_file import find_topology

if __name__ == "__main__":
    modelled(find_topology("diamond"), read_input(__doc__)).run()
