/** Waits for the end of a turn of the event loop. */
export interface TurnListener {
  /** The input of the turn has been handled. */
  endTurn(): void;
}

let due: TurnListener[] = [];

/**
 * Calls the listener when the input of this turn of the event loop has been handled. One immediate serves all listeners
 * of a turn: one for every server with a short message would cost about as much as reading the message.
 */
export function afterLoopTurn(listener: TurnListener): void {
  if (due.length === 0) setImmediate(runDue);
  due.push(listener);
}

function runDue(): void {
  const listeners = due;
  due = [];
  for (const listener of listeners) listener.endTurn();
}
