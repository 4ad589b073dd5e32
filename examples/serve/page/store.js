// Conversations in the browser's own database, a record each, so that tabs that write different ones never meet. Where
// two tabs have written the same one, the later writer's is kept beside the other's as a copy: nothing is lost.
'use strict';

const kept = (() => {
  const channel = 'BroadcastChannel' in window ? new BroadcastChannel('intaglio.chats') : null;
  let base = null, changed = () => {};
  const done = request => new Promise((good, bad) => {
    request.onsuccess = () => good(request.result);
    request.onerror = () => bad(request.error);
  });
  const records = mode => base.transaction('chats', mode).objectStore('chats');
  const sane = each => each && typeof each.id === 'string' && typeof each.title === 'string' &&
      Array.isArray(each.messages) && each.messages.every(message => message && typeof message.content === 'string');
  if (channel)
    channel.onmessage = async ({data}) => changed(data, base ? await done(records('readonly').get(data)) : undefined);

  return {
    /// All that is kept, the latest first, and how many records could not be read. Without a database they are kept
    /// until the page goes.
    async open(on_change) {
      changed = on_change;
      try {
        const asked = indexedDB.open('intaglio', 1);
        asked.onupgradeneeded = () => asked.result.createObjectStore('chats', {keyPath: 'id'});
        base = await done(asked);
        const all = await done(records('readonly').getAll());
        return {
          list: all.filter(sane).sort((a, b) => b.touched - a.touched),
          broken: all.length - all.filter(sane).length
        };
      } catch (problem) {
        base = null;
        return {list: [], broken: 0, problem};
      }
    },
    /// Another writer's record, if there was one, is given back: the conversation then has another id.
    async put(chat) {
      if (!base) return null;
      const to = records('readwrite'), there = await done(to.get(chat.id)),
            met = !!there && (there.revision || 0) !== (chat.revision || 0);
      if (met) Object.assign(chat, {id: chat.id + '+' + Date.now().toString(36), title: chat.title + ' (copy)'});
      chat.revision = (chat.revision || 0) + 1;
      await done(to.put(JSON.parse(JSON.stringify(chat))));
      channel?.postMessage(chat.id);
      return met ? there : null;
    },
    async remove(id) {
      if (!base) return;
      await done(records('readwrite').delete(id));
      channel?.postMessage(id);
    },
    /// Runs the work while no other tab answers in this conversation. @return false: another one does
    async alone(id, work) {
      if (!navigator.locks) {
        await work();
        return true;
      }  // pages that are not from this machine have none without TLS
      return navigator.locks.request('intaglio.' + id, {ifAvailable: true}, async lock => {
        if (!lock) return false;
        await work();
        return true;
      });
    },
  };
})();
