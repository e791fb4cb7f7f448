"""`airtcp plot`: what happened on a connection or a link, over time."""
