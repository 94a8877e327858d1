import { h, setText } from './dom.js';
import { counted, time } from './formats.js';

/**
 * Creates the list of the resources that the person has subscribed to. It stays while other operations are tried,
 * because a call can change a resource.
 */
export function createSubscriptions() {
  const rows = h('ul.rows', { 'aria-labelledby': 'subscriptions-title' });
  const element = h('div.card', { hidden: true }, h('h2', { id: 'subscriptions-title' }, 'Subscriptions'), rows);
  const byUri = new Map();
  const remove = (uri) => {
    byUri.get(uri)?.row.remove();
    byUri.delete(uri);
    element.hidden = byUri.size === 0;
  };
  return {
    element,
    /** Subscribes to a resource. Rejects with the reason why this is not possible. */
    async add(client, uri) {
      if (byUri.has(uri)) return;
      const status = h('span.muted', { role: 'status' }, 'No update yet');
      const end = h('button.quiet', { type: 'button', 'aria-label': `Unsubscribe from ${uri}` }, 'Unsubscribe');
      const row = h('li', {}, h('code', {}, uri), status, end);
      let updates = 0;
      byUri.set(uri, { row });
      try {
        const stop = await client.subscribe(uri, () => {
          updates += 1;
          setText(status, `${counted(updates, 'update')}, the last at ${time(Date.now())}`);
        });
        end.addEventListener('click', () => {
          stop();
          remove(uri);
        });
        rows.append(row);
        element.hidden = false;
      } catch (error) {
        remove(uri);
        throw error;
      }
    },
    /** Forgets all subscriptions, because their client is closed. */
    clear() {
      for (const uri of [...byUri.keys()]) remove(uri);
    },
  };
}
