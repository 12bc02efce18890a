-- New files have a checksum in each page (page_checksums.py). A perdure that does not know of them would write pages
-- without one, which are then taken for damaged: by this row it learns that the store is not for it.
SELECT 1;
