/** One server-sent event as it was on the wire: a field that was not sent is not there. */
export interface SseEvent {
  readonly id?: string;
  readonly event?: string;
  readonly retry?: number;
  /** The text of all `data` lines, joined by LF; undefined if the event had none. */
  readonly data?: string;
}

/**
 * Reads server-sent events from chunks of text, for tests: unlike a browser it also reports events without data, and
 * comments, because tests look at those (WHATWG HTML, 9.2.6).
 */
export function createSseReader({
  onEvent,
  onComment,
}: {
  onEvent(event: SseEvent): void;
  onComment(text: string): void;
}) {
  let pending: string[] = [];
  let endsInCr = false;
  let fields: { id?: string; event?: string; retry?: number; data?: string } = {};

  function readLine(line: string): void {
    if (line === '') {
      if (Object.keys(fields).length > 0) onEvent(fields);
      fields = {};
      return;
    }
    const [, name = line, value = ''] = /^([^:]*): ?(.*)$/s.exec(line) ?? [];
    if (name === '') onComment(value);
    else if (name === 'data') fields.data = fields.data === undefined ? value : `${fields.data}\n${value}`;
    else if (name === 'id' || name === 'event') fields[name] = value;
    else if (name === 'retry') fields.retry = Number(value);
    else throw new Error(`An SSE field that nobody knows: ${JSON.stringify(line)}`);
  }

  return (chunk: string): void => {
    pending.push(chunk);
    // An event of many chunks is joined once: to search all of it for each chunk takes time that grows with its square.
    if (!endsInCr && !/[\r\n]/.test(chunk)) return;
    // A CR at the end may be the first half of CR LF; it waits for the next chunk.
    const lines = pending.join('').split(/\r\n|\n|\r(?!$)/);
    const rest = lines.pop() ?? '';
    pending = [rest];
    endsInCr = rest.endsWith('\r');
    for (const line of lines) readLine(line);
  };
}
