import type { WatchedTools } from '../../app/features/servers.ts';
import type { CreateInterceptor } from '../../core/backend/link/link.ts';
import { ListWatcher } from '../../core/backend/list-watcher.ts';
import { scalarAt } from '../../core/protocol/json.ts';
import { readListItems } from '../../core/protocol/list-page.ts';
import { maxNameLength } from '../../core/protocol/message/call-name.ts';
import type { Message } from '../../core/protocol/message/message.ts';
import { changedMembers, readToolDefinition, type ToolDefinition } from '../../core/protocol/tool-definition.ts';
import { detach } from '../../core/util/boundary.ts';
import { BoundedMap } from '../../core/util/bounded-map.ts';
import { boundedWalks } from '../../core/util/timing/work-meter.ts';

/** The tools whose definitions are kept for each server (P8). */
const maxTools = 1_000;

/**
 * The definitions that are kept for each tool, the newest last (P8). A server can list other definitions for other users:
 * one that was seen before is no change.
 */
const maxDefinitions = 4;

/** A longer page is not read (P8). */
const maxPageBytes = 4 * 1024 * 1024;

/** How long definitions are kept in a store. */
const keptMs = 90 * 24 * 3_600_000;

type Definitions = BoundedMap<string, readonly ToolDefinition[]>;

/**
 * Reports tools of a server whose definition differs from that of an earlier list. A store that outlives the gateway
 * keeps the definitions over a restart.
 */
export function watchDefinitions({ server, values, onChanged, onFailed }: WatchedTools): CreateInterceptor {
  const known: Definitions = new BoundedMap(maxTools);
  let loading: Promise<void> | undefined;
  let isSaving = false;
  const load = async (): Promise<void> => {
    try {
      const stored = await values.get('definition', server);
      for (const [tool, definitions] of stored === undefined ? [] : entriesIn(stored)) known.set(tool, definitions);
    } catch (cause) {
      onFailed(cause);
    }
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
  const note = (listed: readonly (readonly [tool: string, definition: ToolDefinition])[]): void => {
    let isNew = false;
    for (const [tool, definition] of listed) {
      const earlier = known.get(tool);
      const latest = earlier?.at(-1);
      if (earlier?.some((each) => changedMembers(each, definition).length === 0)) continue;
      isNew = true;
      known.set(tool, [...(earlier ?? []), definition].slice(-maxDefinitions));
      if (latest !== undefined) onChanged(tool, changedMembers(latest, definition));
    }
    if (isNew) save();
  };
  return () =>
    new DefinitionReader((listed) => {
      loading ??= load();
      detach(
        'background',
        loading.then(() => note(listed)),
      );
    });
}

/** The stored definitions, which this program has written. */
const entriesIn = (stored: Buffer): [string, readonly ToolDefinition[]][] => JSON.parse(stored.toString());

const toolsOnly: ReadonlyMap<string, true> = new Map([['tools/list', true]]);

/** Reads the definitions in the lists of one backend. */
class DefinitionReader extends ListWatcher<true> {
  readonly #note: (listed: readonly (readonly [string, ToolDefinition])[]) => void;

  constructor(note: (listed: readonly (readonly [string, ToolDefinition])[]) => void) {
    super(toolsOnly);
    this.#note = note;
  }

  protected onList(_: true, { text }: Message): void {
    if (text.length > maxPageBytes) return;
    const listed: [string, ToolDefinition][] = [];
    boundedWalks(() => {
      const page = readListItems(text, 'tools', maxTools);
      for (const { start, end } of typeof page === 'string' ? [] : page.items) {
        const tool = text.subarray(start, end);
        const name = scalarAt(tool, ['name']);
        const definition = typeof name === 'string' ? readToolDefinition(tool) : undefined;
        if (definition !== undefined) listed.push([(name as string).slice(0, maxNameLength), definition]);
      }
    });
    if (listed.length > 0) this.#note(listed);
  }
}
