"""What people look at: forecasts, profiles, reports, graphs and pictures."""
