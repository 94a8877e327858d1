import { withoutSender } from '../../protocol/http/forwarded-headers.ts';
import type { OpenBackend } from '../backend.ts';
import { Interceptor, linkBackends, type Outgoing } from './link.ts';

/** Removes the sender of each request from the headers, behind the last one that asks for it. */
class SenderRemoval extends Interceptor {
  override onSend({ message, headers }: Outgoing): Outgoing {
    return { message, headers: headers && withoutSender(headers) };
  }
}

/** Opens backends that do not see who has sent a request (`senderHeader`): neither with it, nor when they open. */
export const withoutSenders = (open: OpenBackend): OpenBackend => {
  const linked = linkBackends(open, [() => new SenderRemoval()]);
  return (events, opening) => {
    const { headers } = opening ?? {};
    return linked(events, headers ? { ...opening, headers: () => withoutSender(headers()) } : opening);
  };
};
