# SPDX-License-Identifier: Apache-2.0
"""World: simulated world for tests, which control all messages except the standard answers."""

from drone_bridge.motion.wxyz import multiply
from drone_bridge.simulator import codec as sim
from drone_bridge.simulator.codec import Attribute, ItemType

UPRIGHT = (1.0, 0.0, 0.0, 0.0)
STILL = {
    Attribute.POSITION: (0.0, 0.0, 0.0),
    Attribute.VELOCITY: (0.0, 0.0, 0.0),
    Attribute.ACCELERATION: (0.0, 0.0, 0.0),
    Attribute.ORIENTATION: UPRIGHT,
    Attribute.ANGULAR_VELOCITY: (0.0, 0.0, 0.0),
    Attribute.CORPOREAL: True,
}
STREAMED = (0, 1, 2, 3, 4)


class World:
    """Simulated world, and the standard answers."""

    def reset(self, **behaviour):
        """Reset the world."""
        self.entities = {0: dict(STILL)}
        self.extended = {}
        self.btom = UPRIGHT  # of entity 0
        self.answers = {}
        self.is_cuauv_server = True  # which answers OK to REMOVE of a missing trigger
        self._counts = dict.fromkeys(ItemType, 0)
        vars(self).update(behaviour)
        self._counts[ItemType.ENTITY] = max(self.entities) + 1

    def usual_answer(self, request):
        if isinstance(request, sim.GetConfig):
            return sim.Configured(100.0, 1.0, False, False)
        if isinstance(request, sim.ListEntities):
            return sim.EntitiesListed(tuple(self.entities))
        if isinstance(request, sim.GetEntity):
            entity = self.entities.get(request.id)
            if entity is None:
                return sim.Error(0, "No entity with given ID.")
            return sim.EntityGot(request.attribute, entity[request.attribute])
        if isinstance(request, sim.SetEntity) and request.attribute == Attribute.ORIENTATION:
            btom = self.btom if request.id == 0 else UPRIGHT
            self.entities[request.id][Attribute.ORIENTATION] = multiply(request.value, btom)
        if isinstance(request, sim.StreamEntity) and request.id not in self.entities:
            return sim.Error(1, "No entity with given ID.")
        if isinstance(request, sim.SetExtended):
            self.extended[request.id, request.key] = request.data
            return sim.Ok()
        if isinstance(request, sim.GetExtended):
            data = self.extended.get((request.id, request.key))
            missing = sim.Error(0, "No extended entity attribute with given key.")
            return missing if data is None else sim.ExtendedGot(request.key, data)
        if isinstance(request, sim.Remove) and request.type == ItemType.TRIGGER and not self.is_cuauv_server:
            return sim.Error(0, "No trigger with given ID.")
        if request.ADDS is not None:
            number = self._counts[request.ADDS]
            self._counts[request.ADDS] += 1
            if isinstance(request, sim.AddEntity):
                self.entities[number] = dict(STILL)
            return sim.Added(request.ADDS, number)
        return sim.Ok() if request.ANSWER is sim.Ok else sim.Error(9, "The test gave no answer.")
