"""A function that receives an event and returns a status and a body."""

import json


# Called once per event. Printed output goes to the log of the call. An exception becomes a reply with status 500.
def cortexone_handler(event, context=None):
    event = json.loads(event) if isinstance(event, str) else event
    name = event.get("name")
    if not name:
        return {"statusCode": 400, "body": {"error": "missing `name`"}}
    return {"statusCode": 200, "body": {"greeting": f"Hello, {name}!"}}
