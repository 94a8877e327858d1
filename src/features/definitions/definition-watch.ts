import type { WatchedTools } from '../../app/features/calls.ts';
import type { ListSubscriber } from '../../core/backend/list-reader.ts';
import { maxNameLength } from '../../core/protocol/message/call-name.ts';
import { changedMembers, readToolDefinition, type ToolDefinition } from '../../core/protocol/tool-definition.ts';
import { detach } from '../../core/util/boundary.ts';
import { BoundedMap } from '../../core/util/bounded-map.ts';

/** The tools whose definitions are kept for each server (P8). */
const maxTools = 1_000;

/**
 * The definitions that are kept for each tool, the newest last (P8). A server can list other definitions for other users:
 * one that was seen before is no change.
 */
const maxDefinitions = 4;

/** How long definitions are kept in a store. */
const keptMs = 90 * 24 * 3_600_000;

/**
 * Reports tools of a server whose definition differs from that of an earlier list. A store that outlives the gateway
 * keeps the definitions over a restart.
 */
export function watchDefinitions({ server, values, onChanged, onFailed }: WatchedTools): ListSubscriber {
  const known: BoundedMap<string, readonly ToolDefinition[]> = new BoundedMap(maxTools);
  let loading: Promise<void> | undefined;
  let isLoaded = false;
  let isSaving = false;
  const load = async (): Promise<void> => {
    try {
      const stored = await values.get('definition', server);
      for (const [tool, definitions] of stored === undefined ? [] : entriesIn(stored)) known.set(tool, definitions);
    } catch (cause) {
      onFailed(cause);
    }
    isLoaded = true;
  };
  const save = (): void => {
    if (isSaving) return;
    isSaving = true;
    // The pages of a list are saved together.
    setTimeout(() => {
      isSaving = false;
      const text = Buffer.from(JSON.stringify([...known]));
      detach('background', values.set('definition', server, text, keptMs).catch(onFailed));
    }, 100).unref();
  };
  const note = (tool: string, definition: ToolDefinition): void => {
    const earlier = known.get(tool);
    const latest = earlier?.at(-1);
    if (earlier?.some((each) => changedMembers(each, definition).length === 0)) return;
    known.set(tool, [...(earlier ?? []), definition].slice(-maxDefinitions));
    if (latest !== undefined) onChanged(tool, changedMembers(latest, definition));
    save();
  };
  return ({ name, text }, kind) => {
    const definition = kind === 'tool' ? readToolDefinition(text) : undefined;
    if (definition === undefined) return;
    const tool = name.slice(0, maxNameLength);
    if (isLoaded) return note(tool, definition);
    loading ??= load();
    detach(
      'background',
      loading.then(() => note(tool, definition)),
    );
  };
}

/** The stored definitions, which this program has written. */
const entriesIn = (stored: Buffer): [string, readonly ToolDefinition[]][] => JSON.parse(stored.toString());
