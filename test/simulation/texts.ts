/**
 * Texts that parsing and writing again would change: big integers, numbers in other notations, escapes that need not be,
 * the order of keys, unknown members, and white space. Each is a function of the call alone, so that sender and receiver
 * know it without a word between them (P1).
 */
const oddities = String.raw`"z":12345678901234567890,"f":1.0, "e":1E2,"esc":"\u0041\/\ud83c\udf0d", "__proto__" : {"a":[ ]}`;

/** The text of a call, as its client sends it. */
export const callText = (id: number, marker: string, steps: number): string =>
  `{"params":{${oddities},"name":"work","arguments":{"steps":${steps},"marker":"${marker}"},` +
  `"_meta":{"progressToken":"${marker}"}},"method":"tools/call" , "id":${id},"jsonrpc":"2.0","extra":{${oddities}}}`;

/** The text of a call's result, as its server sends it. */
export const resultText = (id: number, marker: string): string =>
  `{"result":{"content":[{"text":"${marker}","type":"text"}],${oddities}},"jsonrpc":"2.0" , "id":${id}}`;

/** The text of a progress notification. */
export const progressText = (marker: string, step: number): string =>
  `{"method":"notifications/progress","params":{"progress":${step},"message":"${marker}",${oddities},` +
  `"progressToken":"${marker}"}, "jsonrpc":"2.0"}`;
