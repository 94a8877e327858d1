// Links to the documentation. The gateway says where it is.

import { h } from './dom.js';

let docs = { page: '', troubleshooting: '', errors: '' };

/** Sets the addresses of the pages, before the views are created. */
export const setDocs = (pages) => {
  docs = pages;
};

/** A link to the documentation, which opens beside the page. */
export const docsLink = (href, text, props = {}) => h('a', { href, target: '_blank', rel: 'noopener', ...props }, text);

/** The address of the section about an error of the gateway. */
export const errorPage = (reason) => `${docs.errors}#${reason}`;

/** The section of the page that explains the states of a server. */
export const statesPage = () => `${docs.page}#what-it-shows`;

/** The page with troubles, and what helps against each. */
export const troubleshootingPage = () => docs.troubleshooting;

/** The page about this page. */
export const aboutPage = () => docs.page;
