/**
 * Reads server-sent events (WHATWG HTML, section 9.2) from the body of a response. `EventSource` cannot send the
 * headers of the page, and would reconnect by itself.
 * @param {ReadableStream<Uint8Array>} body
 * @yields {{ type: string, data: string, id: string | undefined, retryMs: number | undefined }}
 */
export async function* readEvents(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  let event = blank();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const lines = (rest + value).split(/\r\n|\n|\r/);
    rest = lines.pop();
    for (const line of lines) {
      if (line !== '') addLine(event, line);
      else {
        const { lines: data, ...others } = event;
        if (data.length > 0 || others.id !== undefined || others.retryMs !== undefined)
          yield { ...others, data: data.join('\n') };
        event = blank();
      }
    }
  }
}

const blank = () => ({ type: 'message', lines: [], id: undefined, retryMs: undefined });

function addLine(event, line) {
  const colon = line.indexOf(':');
  if (colon === 0) return; // a comment
  const field = colon < 0 ? line : line.slice(0, colon);
  const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
  if (field === 'event') event.type = value;
  else if (field === 'data') event.lines.push(value);
  else if (field === 'id') event.id = value;
  else if (field === 'retry' && /^\d+$/.test(value)) event.retryMs = Number(value);
}
