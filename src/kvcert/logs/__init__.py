"""The step logs: their Arrow schema, how they are read, and the gate that checks them before anything is scored."""
