"""From derived equations to textbook form, every step checked."""
