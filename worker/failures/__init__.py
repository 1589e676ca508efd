"""Facts -> category -> verdict -> cause; pure, standard library only."""
