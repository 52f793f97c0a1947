"""Tables of algorithms on logs: planned in a file, trained cell by cell, shown from the cells' files."""
