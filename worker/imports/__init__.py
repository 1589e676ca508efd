"""What an untrusted sandbox made: fetched, checked, taken in and handed on."""
