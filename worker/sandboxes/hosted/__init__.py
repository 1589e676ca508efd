"""What hosted providers share: one launcher, one sandbox, one way to create. The SDKs are elsewhere."""
