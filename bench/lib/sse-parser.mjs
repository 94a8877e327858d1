/**
 * Cuts a byte stream into SSE events and gives the data of each that has any to `onData`, and before it an id to `onId`, if anybody wants that.
 * Works on Latin-1, since all payloads are ASCII, and knows only single-line data, which all targets write: for load, not for use. No text has a
 * CR of its own.
 */
export function createSseParser(onData, onId) {
  let held = [];
  let endsInLine = false;
  return (chunk) => {
    let text = chunk.latin1Slice();
    if (text.includes('\r')) text = text.replaceAll('\r', ''); // the library of servers in Python writes CR LF
    const hasEnd = text.includes('\n\n') || (endsInLine && text.startsWith('\n'));
    endsInLine = text.endsWith('\n');
    if (held.length > 0 && hasEnd) {
      text = held.join('') + text;
      held = [];
    }
    if (hasEnd) text = text.slice(takeEvents(text, onData, onId));
    if (text !== '') held.push(text);
  };
}

/** Returns the place behind the last whole event. */
function takeEvents(text, onData, onId) {
  let start = 0;
  for (let end = text.indexOf('\n\n'); end !== -1; end = text.indexOf('\n\n', start)) {
    if (onId !== undefined) for (const [, id] of text.slice(start, end).matchAll(/^id: ?(.+)$/gm)) onId(id);
    const line = text.startsWith('data: ', start) ? start : text.indexOf('\ndata: ', start) + 1;
    const from = line + 'data: '.length;
    if (line >= start && from < end && text.startsWith('data: ', line)) onData(text.slice(from, end));
    start = end + 2;
  }
  return start;
}
