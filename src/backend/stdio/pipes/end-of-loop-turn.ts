let due: (() => void)[] = [];

/**
 * Calls back when the input of this turn of the event loop has been handled. One immediate serves all callbacks of a
 * turn: one for every server with a short message would cost about as much as reading the message.
 */
export function afterLoopTurn(callback: () => void): void {
  if (due.length === 0) setImmediate(runDue);
  due.push(callback);
}

function runDue(): void {
  const callbacks = due;
  due = [];
  for (const callback of callbacks) callback();
}
