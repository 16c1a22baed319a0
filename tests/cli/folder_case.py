"""A test with a folder of its own for the files it writes."""
import json
import os
import tempfile
import unittest


class FolderCase(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name, document=None):
        path = os.path.join(self.folder, name)
        if document is not None:
            with open(path, "w", encoding="utf-8") as out:
                json.dump(document, out)
        return path
