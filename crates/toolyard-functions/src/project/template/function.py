"""A function that is given an event, and returns a status and a body."""

import json


# Called once for each event. What it prints goes to the log of the call. An exception is answered with status 500.
def cortexone_handler(event, context=None):
    event = json.loads(event) if isinstance(event, str) else event
    name = event.get("name")
    if not name:
        return {"statusCode": 400, "body": {"error": "who is to be greeted? Give a name."}}
    return {"statusCode": 200, "body": {"greeting": f"Hello, {name}!"}}
