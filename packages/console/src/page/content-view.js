import { h } from './dom.js';
import { bytes } from './formats.js';

/** The media types of images that a browser shows. SVG is left out, because it is a document. */
const shownImages = new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp', 'image/avif', 'image/bmp']);

/**
 * Shows the result of a request: its contents as a person reads them, and the rest as JSON.
 * @param {(uri: string) => Promise<object>} read reads the resource of a link
 */
export function showResult({ content, messages, contents, structuredContent, isError, ...rest }, read) {
  const showContent = (block) => (block?.type === 'resource_link' ? showLink(block, read) : showBlock(block));
  const parts = [
    ...(content ?? []).map(showContent),
    ...(messages ?? []).map(({ role, content: of }) =>
      h('div.field', {}, h('p.muted', {}, role), ...[of].flat().map(showContent)),
    ),
    ...(contents ?? []).map(showResource),
  ];
  if (structuredContent !== undefined) parts.push(h('p.muted', {}, 'Structured content'), showJson(structuredContent));
  delete rest._meta;
  for (const member of protocolMembers) delete rest[member];
  if (Object.keys(rest).length > 0) parts.push(showJson(rest));
  if (parts.length === 0) parts.push(h('p.muted', {}, 'The result is empty.'));
  const tag = isError ? 'div.result.bad' : 'div.result';
  return h(tag, { 'aria-label': 'Result', role: 'group', dir: 'auto' }, ...parts);
}

/** Members of results of 2026-07-28 that say nothing to a person. */
const protocolMembers = ['resultType', 'ttlMs', 'cacheScope'];

/** Shows one content block (2025-11-25, server/tools, "Tool Result"). */
function showBlock(block) {
  switch (block?.type) {
    case 'text':
      return showText(block.text);
    case 'image':
      return showMedia('img', block);
    case 'audio':
      return showMedia('audio', block);
    case 'resource':
      return showResource(block.resource ?? {});
    default:
      return showJson(block);
  }
}

const showText = (text) => h('pre', { tabindex: '0', dir: 'auto' }, String(text));

const showJson = (value) => h('pre', { tabindex: '0' }, JSON.stringify(value, undefined, 2));

/** The address of a resource is text, not a link: only the server knows what it means. */
function showLink({ uri, name, title, description }, read) {
  const result = h('div', { role: 'status' });
  const show = async () => {
    try {
      const { contents = [] } = await read(uri);
      result.replaceChildren(...contents.map(showResource));
    } catch (error) {
      result.replaceChildren(h('p.bad', {}, error.message));
    }
  };
  const label = title ?? name ?? 'Resource';
  return h(
    'div.field',
    {},
    h('p', {}, `${label} `, h('code', {}, uri), h('span.muted', {}, description ? ` ${description}` : '')),
    h('div.buttons', {}, h('button', { type: 'button', 'aria-label': `Read ${label}`, onclick: show }, 'Read')),
    result,
  );
}

function showResource({ uri, mimeType = '', text, blob }) {
  const name = h('p.muted', {}, h('code', {}, uri ?? ''), mimeType === '' ? '' : ` ${mimeType}`);
  const shown = blob === undefined ? showText(text ?? '') : showMedia(mediaTag(mimeType), { data: blob, mimeType });
  return h('div.field', {}, name, shown);
}

const mediaTag = (mimeType) => (mimeType.startsWith('audio/') ? 'audio' : 'img');

/** Shows base64 data as an image or sound; other data as a download. */
function showMedia(tag, { data = '', mimeType = '' }) {
  let blob;
  try {
    blob = new Blob([Uint8Array.from(atob(data), (char) => char.charCodeAt(0))], { type: mimeType });
  } catch {
    return h('p.bad', {}, 'The data is not valid base64.');
  }
  const src = URL.createObjectURL(blob);
  const isShown = tag === 'audio' ? mimeType.startsWith('audio/') : shownImages.has(mimeType);
  if (!isShown)
    return h(
      'p',
      {},
      h('a', { href: src, download: 'result' }, `Download ${mimeType || 'the data'}`),
      ` ${bytes(blob.size)}`,
    );
  const media =
    tag === 'audio'
      ? h('audio', { src, controls: true })
      : h('img', { src, alt: 'Image of the result', onload: () => URL.revokeObjectURL(src) });
  return h('figure', {}, media, h('figcaption', {}, `${mimeType}, ${bytes(blob.size)}`));
}
