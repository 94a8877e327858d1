/** One event as an EventSource dispatches it. */
export interface Dispatched {
  readonly type: string;
  readonly data: string;
  readonly lastEventId: string;
}

/**
 * The events that an EventSource dispatches by WHATWG HTML 9.2.6, written independently of the encoder.
 * @param withIds also tells of events that are not dispatched, since they have an id and no data
 */
export function readByTheRules(
  stream: Uint8Array,
  { withIds = false } = {},
): {
  events: Dispatched[];
  retryMs: number | undefined;
  ids: string[];
} {
  const decoded = new TextDecoder('utf-8').decode(stream); // strips one byte order mark
  const lines = decoded.split(/\r\n|\r|\n/);
  lines.pop(); // a line that no line end finishes is not processed
  const events: Dispatched[] = [];
  const ids: string[] = [];
  let retryMs: number | undefined;
  let [type, data, lastEventId] = ['', '', ''];
  let hasId = false;
  for (const line of lines) {
    if (line === '') {
      if (data !== '') events.push({ type: type || 'message', data: data.replace(/\n$/, ''), lastEventId });
      else if (hasId && withIds) events.push({ type: 'message', data: '', lastEventId });
      ids.push(lastEventId);
      [type, data] = ['', ''];
      hasId = false;
      continue;
    }
    const colon = line.indexOf(':');
    if (colon === 0) continue;
    const field = colon === -1 ? line : line.slice(0, colon);
    const value = colon === -1 ? '' : line.slice(colon + 1).replace(/^ /, '');
    if (field === 'event') type = value;
    else if (field === 'data') data += `${value}\n`;
    else if (field === 'id' && !value.includes('\0')) [lastEventId, hasId] = [value, true];
    else if (field === 'retry' && /^[0-9]+$/.test(value)) retryMs = Number(value);
  }
  return { events, retryMs, ids };
}
