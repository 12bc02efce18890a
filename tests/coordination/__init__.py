"""Tasks among tasks: dependencies, schedules, triggers, handlers, takeovers, frames."""
