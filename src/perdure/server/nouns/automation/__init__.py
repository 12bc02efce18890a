"""What starts and answers by itself: schedules, triggers, callbacks, webhooks."""
