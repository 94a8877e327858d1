/**
 * The texts of messages. Each is a function of the call or its sender alone, so that sender and receiver know it without
 * a word between them (P1).
 */

/**
 * Members that parsing and writing again would change: big integers, numbers in other notations, escapes that need not be,
 * the order of keys, unknown members, and white space.
 */
const oddities = String.raw`"z":12345678901234567890,"f":1.0, "e":1E2,"esc":"\u0041\/\ud83c\udf0d", "__proto__" : {"a":[ ]}`;

/** How the texts of a call are written: as most programs do, oddly, or oddly and with carriage returns. */
function layoutOf(marker: string): 'plain' | 'odd' | 'broken' {
  const sum = [...marker].reduce((before, letter) => (before * 31 + letter.charCodeAt(0)) % 1_009, 7);
  return (['plain', 'plain', 'odd', 'broken'] as const)[sum % 4] as 'plain' | 'odd' | 'broken';
}

const message = (members: object): string => JSON.stringify({ jsonrpc: '2.0', ...members });

/** A server may put a carriage return where JSON allows white space. */
const withCarriageReturns = (text: string): string => text.replaceAll(', ', ',\r ');

/** A text of a server, as its client gets it: raw carriage returns have become spaces. */
export const asReceived = (text: string): string => text.replaceAll('\r', ' ');

/** The text with which a client opens its session. */
export const initializeText = (client: string): string =>
  `{"params":{${oddities},"clientInfo":{"version":"1","name":"${client}"},"capabilities":{ }, ` +
  `"protocolVersion":"2025-11-25"},"method":"initialize" , "id":0,"jsonrpc":"2.0","extra":{${oddities}}}`;

export const initializedText = `{"params":{"_meta":{${oddities}}},"method":"notifications/initialized" , "jsonrpc":"2.0"}`;

/** The text of a call, as its client sends it. */
export const callText = (id: number, marker: string, steps: number): string => {
  const params = { name: 'work', arguments: { steps, marker }, _meta: { progressToken: marker } };
  if (layoutOf(marker) === 'plain') return message({ id, method: 'tools/call', params });
  return (
    `{"params":{${oddities},"name":"work","arguments":{"steps":${steps},"marker":"${marker}"},` +
    `"_meta":{"progressToken":"${marker}"}},"method":"tools/call" , "id":${id},"jsonrpc":"2.0","extra":{${oddities}}}`
  );
};

/** The text of a call's result, as its server sends it. */
export const resultText = (id: number, marker: string): string => {
  const layout = layoutOf(marker);
  if (layout === 'plain') return message({ id, result: { content: [{ type: 'text', text: marker }] } });
  const text = `{"result":{"content":[{"text":"${marker}","type":"text"}],${oddities}},"jsonrpc":"2.0" , "id":${id}}`;
  return layout === 'broken' ? withCarriageReturns(text) : text;
};

/** The text of a progress notification. Those of a plain call are recognised by their bytes. */
export const progressText = (marker: string, step: number): string => {
  const layout = layoutOf(marker);
  if (layout === 'plain')
    return message({
      method: 'notifications/progress',
      params: { progressToken: marker, progress: step, total: 12, message: marker },
    });
  const text =
    `{"method":"notifications/progress","params":{"progress":${step},"message":"${marker}",${oddities},` +
    `"progressToken":"${marker}"}, "jsonrpc":"2.0"}`;
  return layout === 'broken' ? withCarriageReturns(text) : text;
};

/** The text of a log message of a server. */
export const noteText = (by: string, number: number): string =>
  `{"params":{"data":{"number":${number},"by":"${by}",${oddities}},"level":"info"}, "method":"notifications/message","jsonrpc":"2.0"}`;
