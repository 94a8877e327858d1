// What the package offers to the gateway that plugs it in.
export {
  type BackendOwner,
  backendOwnerKey,
  type ConsoleEvent,
  type ConsoleEventType,
  type ConsoleHost,
  type LiveBackend,
  type LiveBackends,
  type MessageListener,
  type MessageSource,
  type PassedMessage,
  type ServerCheck,
  type SessionState,
} from './host.ts';
export { OperatorActions } from './operator-actions.ts';
export { type Asset, readAssets } from './page-assets.ts';
export { type PageSubscription, PageSubscriptions } from './page-subscriptions.ts';
export { PlaygroundSessions } from './playground-sessions.ts';
export { type History, type HistoryRange, historyRanges } from './record/calls/history.ts';
export { ConsoleRecord } from './record/console-record.ts';
export { redactContent, redactStart } from './record/redacted-content.ts';
export { tellingLines } from './record/telling-lines.ts';
export { OtherSessions } from './sessions/other-sessions.ts';
export { isSessionOrder } from './sessions/session-list.ts';
export { KnownInstances } from './snapshot/known-instances.ts';
export { ProcessMemory } from './snapshot/process-memory.ts';
export { SharedTopic } from './snapshot/shared-topic.ts';
export type { ServerHealthView } from './snapshot/snapshot.ts';
export { type ServerState, SnapshotBuilder } from './snapshot/snapshot-builder.ts';
