import { type Message, readServerTexts } from '../../protocol/message/message.ts';
import { flattenLineBreaks, withoutBoms } from '../../protocol/wire/lines.ts';
import { JoinedChunks } from '../../util/join-chunks.ts';
import type { BackpressureGroup } from './backpressure-group.ts';
import type { HttpResponse } from './http-connection.ts';

/** How long the body of a refusal may be silent, in milliseconds. */
const maxRefusalSilenceMs = 2_000;

/**
 * Reads the JSON of a response. Rejects if the body breaks before its end, or is silent for `idleMs`.
 * @param maxBytes stops a server whose response never ends from filling the memory
 * @param idleMs 0 for no limit
 * @returns undefined if the body is larger; it is destroyed then
 */
export async function readJsonBody(
  body: HttpResponse['body'],
  flow: BackpressureGroup,
  maxBytes: number,
  idleMs = 0,
): Promise<Buffer | undefined> {
  const chunks = new JoinedChunks(maxBytes);
  let bytes = 0;
  try {
    await flow.read(
      body,
      (chunk) => {
        bytes += chunk.length;
        if (bytes <= maxBytes) chunks.add(chunk);
        else body.destroy();
      },
      idleMs,
    );
  } catch (cause) {
    if (bytes <= maxBytes) throw cause;
  }
  return bytes <= maxBytes ? withoutBoms(chunks.take()) : undefined;
}

/**
 * Reads the text of a refusal, which can be the server's error in JSON. Returns undefined if the body is not JSON,
 * breaks, is larger than `maxBytes` or is silent for two seconds: the status alone then says that the server refused.
 */
export async function readRefusalText(
  { mediaType, body }: Pick<HttpResponse, 'mediaType' | 'body'>,
  flow: BackpressureGroup,
  maxBytes: number,
): Promise<Buffer | undefined> {
  if (mediaType !== 'application/json') {
    await body.drain();
    return undefined;
  }
  try {
    const text = await readJsonBody(body, flow, maxBytes, maxRefusalSilenceMs);
    return text === undefined ? undefined : flattenLineBreaks(text);
  } catch {
    return undefined;
  }
}

/**
 * Reads the messages of a refusal, as `readRefusalText` reads its text. Empty if there is none. What is no message says
 * less than the status.
 */
export async function readRefusalMessages(
  answer: Pick<HttpResponse, 'mediaType' | 'body'>,
  flow: BackpressureGroup,
  maxBytes: number,
): Promise<readonly Message[]> {
  const text = await readRefusalText(answer, flow, maxBytes);
  const messages = text === undefined ? [] : (await readServerTexts([text])).messages;
  return messages.filter(({ standIn }) => standIn?.reason !== 'bad_response');
}
