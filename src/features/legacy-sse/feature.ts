import type { LegacySseFeature } from '../../app/features/endpoints.ts';
import { behindAdmission } from '../../core/http/pipeline/admission.ts';
import { asHandler } from '../../core/http/router.ts';
import { LegacyMessagesEndpoint, LegacySseStream } from './legacy-sse.ts';
import { MessagesEndpoint, publicPrefixOf } from './messages-endpoint.ts';

export const legacySse: LegacySseFeature = {
  addRoutes(app, { streamPath, messagesPath, publicUrl }, options) {
    const own = { ...options, endpoint: new MessagesEndpoint({ streamPath, messagesPath, publicUrl }) };
    const messages = asHandler(behindAdmission(options, new LegacyMessagesEndpoint(own)));
    app.all(streamPath, asHandler(behindAdmission(options, new LegacySseStream(own))));
    app.all(messagesPath, messages);
    // A client that reaches the gateway directly, or through a proxy that keeps the path, posts to the public path.
    if (publicUrl !== undefined) app.all(publicPrefixOf(publicUrl) + messagesPath, messages);
  },
};
