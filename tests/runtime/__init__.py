"""Live things that outlive the agent."""
