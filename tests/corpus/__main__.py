"""`make corpus`: how right the classifier is, beside others."""

from tests.corpus.report import lines

for line in lines():
    print(line)
