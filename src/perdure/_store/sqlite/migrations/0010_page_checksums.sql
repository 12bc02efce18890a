-- New files have a checksum in each page (page_checksums.py). An older perdure would write pages without one, which
-- would then be taken for damaged. This row tells it that it cannot use the store.
SELECT 1;
