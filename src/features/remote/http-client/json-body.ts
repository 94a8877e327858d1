import type { Message } from '../../../core/protocol/message/message.ts';
import { readServerTexts } from '../../../core/protocol/message/server-texts.ts';
import { JoinedChunks } from '../../../core/protocol/wire/join-chunks.ts';
import { flattenLineBreaks, withoutBoms } from '../../../core/protocol/wire/lines.ts';
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

/** What the body of a refusal says. */
export interface RefusalBody {
  /** Its messages: the server's error, as a rule. What is no message says less than the status. */
  readonly messages: readonly Message[];
  /** The server expects TLS at this port, and got plain HTTP. */
  readonly expectsTls: boolean;
}

/** The part of a text that explains a refusal (P8). */
const maxTextBytes = 4 * 1024;

/** How nginx, Go, Apache and Tomcat refuse plain HTTP at a port for TLS. All of them answer with the status 400. */
const expectedTls =
  /plain HTTP request was sent to HTTPS port|HTTP request to an HTTPS server|plain HTTP to an SSL-enabled server|host and port requires TLS/i;

/**
 * Reads the body of a refusal. It says nothing if it is no JSON, breaks, is larger than `maxBytes`, or is silent for two
 * seconds: the status alone then says that the server refused.
 */
export async function readRefusal(
  { status, mediaType, body }: Pick<HttpResponse, 'status' | 'mediaType' | 'body'>,
  flow: BackpressureGroup,
  maxBytes: number,
): Promise<RefusalBody> {
  if (mediaType !== 'application/json') {
    if (status === 400)
      return { messages: [], expectsTls: expectedTls.test(await readStart(body, { maxBytes: maxTextBytes })) };
    await body.drain();
    return saysNothing;
  }
  const text = await readJsonBody(body, flow, maxBytes, maxRefusalSilenceMs).catch(() => undefined);
  const messages = text === undefined ? [] : (await readServerTexts([flattenLineBreaks(text)])).messages;
  return { messages: messages.filter(({ standIn }) => standIn?.reason !== 'bad_response'), expectsTls: false };
}

const saysNothing: RefusalBody = { messages: [], expectsTls: false };

/**
 * Reads the start of a body, as Latin-1. Resolves when the body is over, for any reason.
 * @param isEnough true for a text after which nothing more is read
 */
export function readStart(
  body: HttpResponse['body'],
  {
    maxBytes,
    limitMs = maxRefusalSilenceMs,
    isEnough = () => false,
  }: { readonly maxBytes: number; readonly limitMs?: number; isEnough?(text: string): boolean },
): Promise<string> {
  return new Promise((resolve) => {
    let text = '';
    const limit = setTimeout(() => body.destroy(), limitMs);
    body.read({
      onChunk(chunk) {
        text += chunk.toString('latin1');
        if (text.length > maxBytes || isEnough(text)) body.destroy();
      },
      onEnd() {
        clearTimeout(limit);
        resolve(text);
      },
    });
  });
}
