import { noteAddress } from './address.js';
import { copyText, h, setText, showList } from './dom.js';
import { snippetsFor } from './snippets.js';

/** Creates the view with the setup of each client for a server. */
export function createConnect(section, { servers, needsToken }) {
  const server = h(
    'select',
    { id: 'connect-server' },
    ...servers.map(({ name }) => h('option', { value: name }, name)),
  );
  const url = h('input', { id: 'connect-url', type: 'url', spellcheck: 'false', autocomplete: 'off' });
  const list = h('div.snippets');
  const draw = () =>
    showList(
      list,
      snippetsFor({ name: server.value, url: url.value, needsToken }),
      ({ title }) => title,
      createSnippet,
    );
  const choose = () => {
    url.value = servers.find(({ name }) => name === server.value)?.url ?? '';
    draw();
  };
  server.addEventListener('change', () => {
    noteAddress('connect', [server.value]);
    choose();
  });
  url.addEventListener('input', draw);
  section.append(
    h(
      'div.heading',
      {},
      h(
        'div',
        {},
        h('h1', { id: 'connect-title', tabindex: '-1' }, 'Connect'),
        h('p.muted.lead', {}, 'Copy the settings for your client.'),
      ),
    ),
    h(
      'div.card.inline',
      {},
      h('div.field', {}, h('label', { for: 'connect-server' }, 'Server'), server),
      h('div.field.wide', {}, h('label', { for: 'connect-url' }, 'URL for clients'), url),
    ),
    list,
  );
  choose();
  return {
    /** Shows the settings for the server that an address names. */
    show({ parts: [name] }) {
      if (!servers.some((one) => one.name === name)) return;
      server.value = name;
      choose();
    },
  };
}

function createSnippet({ title, where }) {
  const code = h('code');
  const install = h('a.button', { hidden: true }, `Add to ${title}`);
  const copy = () => copyText(code.textContent, { done: `Copied for ${title}.`, source: code });
  return {
    element: h(
      'section.card',
      {},
      h(
        'div.heading',
        {},
        h('div', {}, h('h2', {}, title), h('p.muted', {}, where)),
        h(
          'div.buttons',
          {},
          install,
          h('button', { type: 'button', 'aria-label': `Copy for ${title}`, onclick: () => void copy() }, 'Copy'),
        ),
      ),
      h('pre', { tabindex: '0', 'aria-label': `For ${title}` }, code),
    ),
    update({ text, install: link }) {
      setText(code, text);
      install.hidden = link === undefined;
      if (link !== undefined) install.href = link;
    },
  };
}
