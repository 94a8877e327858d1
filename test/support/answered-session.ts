import { initialize, type Session, type SessionOptions } from './http-client.ts';

/** A session whose answers have `json` also if they came as a stream, as on a busy machine. */
export const answered = (session: Session): Session => ({
  ...session,
  request: async (...request) => {
    const answer = await session.request(...request);
    return { ...answer, json: answer.json ?? answer.messages.at(-1) };
  },
});

/** As `initialize`, for an answered session. */
export const openAnswered = async (url: string, options?: SessionOptions): Promise<Session> =>
  answered(await initialize(url, options));
