import type { Message } from '../support/http-client.ts';
import { createSseReader } from '../support/sse-reader.ts';

/**
 * Makes a `fetch` that tells when the event stream of a POST is over, in order or not, and its request has no answer. The
 * SDK hides that where a stream cannot resume, as in 2026-07-28: it waits for its own limit of 60 s.
 */
export function watchStreams(tellBroken: () => void, fetchOne: typeof fetch = fetch): typeof fetch {
  return async (to, init) => {
    const response = await fetchOne(to, init);
    const isStream = response.headers.get('content-type')?.startsWith('text/event-stream') === true;
    if (init?.method !== 'POST' || !isStream || response.body === null) return response;
    const { id } = JSON.parse(String(init.body)) as Message;
    let isAnswered = false;
    const read = createSseReader({
      onEvent({ data }) {
        const message: Message = data === undefined || data === '' ? undefined : JSON.parse(data);
        isAnswered ||= message?.id === id && message.method === undefined;
      },
      onComment: () => undefined,
    });
    const decoder = new TextDecoder();
    const reader = response.body.getReader();
    const over = (): void => {
      if (!isAnswered) tellBroken();
    };
    const body = new ReadableStream({
      async pull(controller) {
        try {
          const { done, value } = await reader.read();
          if (value !== undefined) {
            read(decoder.decode(value, { stream: true }));
            controller.enqueue(value);
          }
          if (!done) return;
          controller.close();
          over();
        } catch (error) {
          controller.error(error);
          over();
        }
      },
      cancel: (reason) => reader.cancel(reason), // the client has left by itself
    });
    const { status, statusText, headers } = response;
    return new Response(body, { status, statusText, headers });
  };
}
